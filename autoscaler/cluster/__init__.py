"""The Kubernetes API: reading (store), the journal, publishing. All state is kept there."""
