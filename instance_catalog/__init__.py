"""Hardware that can be bought, and the devices that its nodes will publish.

The physical vocabulary of Foreslice: quantities, devices and ResourceSlices, instance types and offerings, the
Kubernetes versions that limit what a driver may publish. Knows neither providers nor the autoscaler.
"""
