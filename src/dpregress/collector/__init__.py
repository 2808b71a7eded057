"""Campaigns under local privacy: what a study asks, what a device answers, and how answers travel."""

from dpregress.collector.client import device_report
from dpregress.collector.study import Study
from dpregress.collector.wire import Report

__all__ = ["Report", "Study", "device_report"]
