"""The probe through the real pynvml, against a libnvidia-ml that a C compiler builds from tests/fakes/nvml."""
