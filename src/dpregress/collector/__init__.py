"""Studies under local privacy: questions, answers of devices, and the format of reports."""

from dpregress.collector.client import device_report
from dpregress.collector.study import Study
from dpregress.collector.wire import Report

__all__ = ["Report", "Study", "device_report"]
