"""JSON models of the toll API, with the descriptions that OpenAPI and MCP clients see."""

from typing import Literal

from pydantic import BaseModel, Field


class Unanswered(BaseModel):
    """Why there is no answer."""

    detail: str = Field(
        description="One sentence that says what to change.",
        examples=["start_date must be a day, written YYYY-MM-DD."],
    )


class TollClass(BaseModel):
    """Vehicles that left motorways in one region and one part of the day: never fewer than k."""

    section_region: str = Field(
        description="Common prefix of the ids of the motorway sections, followed by 区域 (` area`"
        " in English); 全部区域 (`all areas`) if they have no common prefix.",
        examples=["G5615530120区域"],
    )
    time_period: str = Field(
        description="Part of the local day, by name and hours; the last hour is not included. The"
        " period passes midnight if the second hour is not above the first.",
        examples=["下午时段(12-18)"],
    )
    truck_count: int | None = Field(
        description="Number of trucks. A truck counts once in each window, so over several days"
        " these are truck-days, not different trucks. In each window, at least k of them are"
        " different trucks. null if other vehicles may be among those of the stream.",
        ge=0,
        examples=[12],
    )
    vehicle_count: int = Field(
        description="Number of vehicles of any kind, counted in the same way.",
        ge=0,
        examples=[12],
    )
    avg_toll: float | None = Field(
        description="Mean toll of an exit, in yuan, rounded to hundredths: over trucks, by one exit"
        " of each in a window, drawn at random. null if fewer than k trucks had a toll.",
        examples=[24.8],
    )
    k_anonymized: Literal[True] = Field(description="Always true.")
    algorithm: Literal["KACA"] = "KACA"


class ClusteringSummary(BaseModel):
    """How the classes were formed."""

    algorithm: str = Field(description="Clustering algorithm.", examples=["K-Means"])
    clusters: int = Field(description="Classes in the answer, on all pages.", ge=0, examples=[4])
    description: str = Field(examples=["基于聚类的自适应泛化"])


class Generalization(BaseModel):
    """How the exact values were generalized."""

    geographic: str = Field(examples=['聚类内section_id公共前缀 + "区域"'])
    temporal: str = Field(examples=["聚类内时间范围泛化"])


class Statistics(BaseModel):
    """Published and suppressed records of the requested windows."""

    total_records: int = Field(description="Exits in the windows.", ge=0, examples=[2100])
    anonymized_groups: int = Field(
        description="Classes in the answer, on all pages.", ge=0, examples=[4]
    )
    suppressed_records: int = Field(
        description="Exits in no class of the answer.", ge=0, examples=[0]
    )
    retention_rate: float | None = Field(
        description="Percentage of the exits that are in a class; null if there were none.",
        ge=0,
        le=100,
        examples=[100.0],
    )


class PrivacyProtection(BaseModel):
    """Method of anonymization, and its cost."""

    method: str = Field(examples=["KACA (K-Anonymity Clustering Algorithm)"])
    algorithm: Literal["KACA"] = "KACA"
    k_value: int = Field(description="Least number of trucks in a class.", ge=2, examples=[5])
    input_source: str = Field(examples=["原始出口交易记录"])
    quasi_identifiers: list[str] = Field(
        description="Generalized attributes.", examples=[["section_id", "exit_time"]]
    )
    clustering: ClusteringSummary
    generalization: Generalization
    statistics: Statistics


class TollAnswer(BaseModel):
    """Classes of trucks that left motorways, and how they were anonymized."""

    success: Literal[True] = True
    data: list[TollClass] = Field(description="One page of classes, sorted by region and time.")
    count: int = Field(description="Classes on this page.", ge=0, examples=[4])
    category: str = Field(examples=["📊 流量统计类（k-匿名保护）"])  # noqa: RUF001  as in Chinese
    privacy_protection: PrivacyProtection


class ReleaseEntry(BaseModel):
    """One window of a stream that was anonymized and published."""

    stream: str = Field(examples=["toll"])
    start: str = Field(
        description="Beginning of the window, ISO 8601 in the stream's local time.",
        examples=["2023-01-03T00:00:00+08:00"],
    )
    end: str = Field(
        description="End of the window, not included.", examples=["2023-01-04T00:00:00+08:00"]
    )
    closed_at: str = Field(
        description="When it was anonymized.", examples=["2023-01-04T00:30:01+08:00"]
    )
    k: int = Field(description="Least number of vehicles in a class.", ge=2, examples=[5])
    classes: int = Field(description="Equivalence classes.", ge=0, examples=[310])
    total_records: int = Field(description="Records of the window.", ge=0, examples=[2100])
    suppressed_records: int = Field(
        description="Records of the window that are in no class.", ge=0, examples=[0]
    )


class ReleaseList(BaseModel):
    """Releases, newest first."""

    success: Literal[True] = True
    data: list[ReleaseEntry] = Field(description="One page of them.")
    count: int = Field(description="Releases on this page.", ge=0, examples=[1])
    total: int = Field(description="Releases on all pages.", ge=0, examples=[30])
