"""moto, a fake of AWS that nobody here wrote, as a second opinion about the AWS adapter.

server.py    moto's server in a process of its own, on a loopback port
account.py   an account in it that is ready for launches, and the adapter with real clients
steps.py     what the adapter does, step by step; which steps moto lacks, and what it answers instead
test_moto.py every supported step passes; a step that moto lacks fails the day moto gains it
"""
