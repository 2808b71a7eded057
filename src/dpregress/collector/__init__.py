"""Studies under local privacy or with two collectors: questions, answers of devices, and the format of reports."""

from dpregress.collector.client import device_report, device_shares
from dpregress.collector.study import Study
from dpregress.collector.wire import Report, ShareReport

__all__ = ["Report", "ShareReport", "Study", "device_report", "device_shares"]
