"""Apache Spark as the cluster that reads whole logs. pyspark is imported only by its commands."""

from typing import Final

from statesvc.seams import AddOn

ADDON: Final = AddOn(cluster="statesvc.addons.spark.spark_cluster:spark_cluster")
