"""Goals of speed and memory, measured: each module is a command of its own."""
