"""Parts of the tests on a real control plane: processes, cluster, installation, proxies, deaths."""
