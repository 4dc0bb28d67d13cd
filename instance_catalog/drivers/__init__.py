"""DRA drivers as data: profiles, releases, DeviceClasses, and the recognition of their DaemonSets."""
