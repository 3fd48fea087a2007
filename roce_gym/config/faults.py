"""What goes wrong during a run."""

from __future__ import annotations

from pydantic import Field, model_validator

from roce_gym.config.fields import HostId, Model, NonNegative


class Storm(Model):
    """A NIC that keeps sending pause frames for one class, whatever it receives.

    Source: Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016, section 4.3. Frames
    follow each other as those of a switch that has to pause, see :class:`PfcConfig`.
    """

    host: HostId = Field(description="label of the host")
    traffic_class: str
    start_us: NonNegative = 0.0
    stop_us: NonNegative | None = Field(None, description="None: never")

    @model_validator(mode="after")
    def _ordered(self) -> Storm:
        if self.stop_us is not None and self.stop_us <= self.start_us:
            raise ValueError(
                f"stop_us = {self.stop_us} must be greater than start_us = {self.start_us}"
            )
        return self


class FaultsConfig(Model):
    """Faults by kind."""

    storms: tuple[Storm, ...] = ()
