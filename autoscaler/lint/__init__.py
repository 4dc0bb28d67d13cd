"""What is wrong, or will surprise, in claims and classes: found before a pod waits for it. Must not know files."""
