"""Questions to the history, cell by cell: open it as a notebook (Jupytext, VS Code, PyCharm), or run it as a script.

python questions.py /var/lib/waitreg/history --day 2026-11-24 --key 4711
"""

# %% What is asked
from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import DataFrame, Row, SparkSession

parser = argparse.ArgumentParser(description="Answer questions from the history of settled records.")
parser.add_argument("directory", help="the folder that `waitreg history` writes")
parser.add_argument("--day", type=date.fromisoformat, default=date.today() - timedelta(days=7), help="YYYY-MM-DD, UTC")
parser.add_argument("--key", default="4711", help="key of a record, as text")
given = parser.parse_args()

# %% The history as a view
spark = SparkSession.builder.appName("history").getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
spark.read.parquet(given.directory).createOrReplaceTempView("history")


def show(title: str, answer: DataFrame) -> Sequence[Row]:
    """Print a title and the rows of an answer, and return the rows."""
    rows = answer.collect()
    print(f"\n{title}")
    for row in rows:
        print("  " + ", ".join(f"{name}: {value}" for name, value in row.asDict().items()))
    return rows


# %% What happened that day, by group and outcome
show(
    f"{given.day}: records by group and outcome",
    spark.sql(
        """
        select consumer_group, outcome, count(*) as records,
               max(unix_millis(settled_at) - unix_millis(registered_at)) / 1000 as longest_s
        from history
        where day = :day
        group by all
        order by all
        """,
        {"day": given.day},
    ),
)

# %% The hour in which the most records failed or expired
show(
    f"{given.day}: the worst hours",
    spark.sql(
        """
        select date_trunc('hour', settled_at) as hour, consumer_group, count(*) as records
        from history
        where day = :day and outcome in ('dead_lettered', 'expired')
        group by all
        order by records desc, hour
        limit 5
        """,
        {"day": given.day},
    ),
)

# %% Was this record done? Every delivery of it, and what came late
show(
    f"key {given.key}: every delivery",
    spark.sql(
        """
        with delivery as (
            select distinct wait_id, topic, partition, offset, delivery
            from history
            where string(key) = :key
        )
        select delivery.topic, delivery.partition, delivery.offset, delivery.delivery,
               settled.outcome, settled.settled_at
        from delivery
        join history as settled on settled.wait_id = delivery.wait_id
        order by settled.settled_at, settled.wait_offset
        """,
        {"key": given.key},
    ),
)
