"""The stages of a cluster on Flink, beside our own workers: `python -m benchmarks.flink FLINK`.

FLINK is an environment of its own, because PyFlink and this package pin other versions of numpy:
a venv of Python 3.11 with `apache-flink` (2.3) and what `anonymizer` needs, into whose
`pyflink/lib` Maven has copied the runtime dependencies of `pom.xml`. Kafka is that of
`make test-cluster`.
"""
