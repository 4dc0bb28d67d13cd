"""What can be bought, and what will it publish?

The physical vocabulary of Foreslice: quantities, devices and ResourceSlices, instance types and offerings, the
Kubernetes versions that bound what a driver may publish. Knows neither providers nor the autoscaler.
"""
