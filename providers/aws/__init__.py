"""AWS: EC2 machines, reservations, Capacity Blocks and auto-scaling groups, through boto3 (extra foreslice[aws])."""
