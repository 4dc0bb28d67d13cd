"""A fake of Compute Engine's managed instance groups, and of the part of GKE's API that says what a node pool is.

`server.py` answers over HTTP, so that Google's own REST clients talk to it. Every request and every answer passes
through the client's proto types: a field that they do not know fails. It is never kinder than the cloud: an operation
that is DONE has only been accepted, errors come late, a group tries again for ever, lists lag, and rate quotas apply.
"""
