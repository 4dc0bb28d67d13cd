"""DRA drivers as data: profiles, releases, DeviceClasses, and how a DaemonSet is recognised as one."""
