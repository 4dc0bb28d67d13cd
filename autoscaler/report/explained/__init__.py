"""The data and the lines of `foreslice explain` for objects other than pods: claims, nodes, requests and buffers."""
