"""Random faults of Google Cloud, with the provider for it on its fake."""
