"""The functions that expressions call: cel-go's standard library, its extensions, and Kubernetes' own."""
