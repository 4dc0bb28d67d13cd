"""The KubernetesApi on a real API server: HTTP, kubeconfig, answers, watches."""
