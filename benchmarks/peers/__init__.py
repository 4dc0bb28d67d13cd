"""What people would run instead, on the same documents: Karpenter, as an ordinary dependency of a Go program."""
