"""Metrics: totals kept in Redis, published as absolute values.

In the order things happen: `snapshot` is what was read, `names` what may be published, `projection` what
follows from the one for the other, `collector` and `render` its text, `target` and `push` the way to a
Pushgateway, `textfile` the way to a node exporter, `publish` the lock around reading and pushing.
Only `collector` and `render` import prometheus_client, which costs 60 ms.
"""
