"""Files and standard input to a Snapshot: what `foreslice plan -f` reads.

It finds documents, remembers where each value stands, hands objects to kube/ and puts what comes back together the way
a cluster would hold it: workloads as pods, templates as claims. Every object is used, reported, or named as ignored
with the reason; all problems are found in one go. It decides nothing about placement.
"""
