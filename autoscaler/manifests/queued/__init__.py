"""The objects that are written for pods of node pools that GKE's autoscaler owns: ProvisioningRequests and their
PodTemplates."""
