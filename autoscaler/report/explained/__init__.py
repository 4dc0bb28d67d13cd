"""The data and the lines of `foreslice explain` for what is no pod: claims, nodes, requests and buffers."""
