"""The thirty programs of PolyBench/C 4.2 as plain loops: `python -m examples.polybench` says what is known of each."""
