"""Access to the Kubernetes API: reading (store), the journal, publishing. All state is in the API."""
