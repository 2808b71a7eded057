"""The tables of the papers: where each comes from, under which licence, and how its file is recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dpregress.errors import InvalidInput, one_line

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_CC_BY = "CC BY 4.0 (UCI Machine Learning Repository): name its creators where you publish results"


@dataclass(frozen=True)
class Dataset:
    """A table that experiments read.

    Parameters
    ----------
    name : str
        Of its Parquet file.
    title : str
    source : str
        Who published it.
    licence : str
    columns : tuple of str
        Names of the columns in the file of the source, where it has no line of names or other ones.
    rows : int
    urls : tuple of str
        The files of the original source, read one after another; empty where it offers none that we can check.
    member : str
        The file inside an archive.
    delimiter : str
    header : bool
        Whether the file begins with a line of names.
    checksum : str
        SHA-256 of the rows, in any order (:func:`dpregress.datasets.fetch.checksum_of`).
    """

    name: str
    title: str
    source: str
    licence: str
    columns: tuple[str, ...]
    rows: int
    urls: tuple[str, ...] = ()
    member: str = ""
    delimiter: str = ","
    header: bool = True
    checksum: str = ""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _named(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


_WINE = _named(
    "fixed acidity,volatile acidity,citric acid,residual sugar,chlorides,free sulfur dioxide,total sulfur dioxide,"
    "density,pH,sulphates,alcohol,quality"
)
_BANK = _words(
    "age job marital education default balance housing loan contact day month duration campaign pdays previous "
    "poutcome y"
)
_BIKE = _words(
    "instant dteday season yr mnth hr holiday weekday workingday weathersit temp atemp hum windspeed casual registered "
    "cnt"
)
_SGEMM = (
    *_words("MWG NWG KWG MDIMC NDIMC MDIMA NDIMB KWI VWM VWN STRM STRN SA SB"),
    *(f"Run{run} (ms)" for run in range(1, 5)),
)
_ADULT = _words(
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
_COVER = (
    *_words(
        "Elevation Aspect Slope Horizontal_Distance_To_Hydrology Vertical_Distance_To_Hydrology "
        "Horizontal_Distance_To_Roadways Hillshade_9am Hillshade_Noon Hillshade_3pm Horizontal_Distance_To_Fire_Points"
    ),
    *(f"Wilderness_Area_{place}" for place in range(1, 5)),
    *(f"Soil_Type_{place}" for place in range(1, 41)),
    "Cover_Type",
)
_OWN = "no download: put NAME.parquet in the folder of DPREGRESS_DATA"

_ALL = (
    Dataset(
        "wine_quality_white", "White-wine quality", "Cortez et al. 2009, UCI", _CC_BY, _WINE, 4_898,
        (f"{_UCI}wine-quality/winequality-white.csv",), delimiter=";",
        checksum="386689fa996274f8c71430fa552d36a6c55d0f568f5971498a22a6c69bc992b3",
    ),
    Dataset("power_plant", "Combined cycle power plant", "Tufekci 2014, UCI (an Excel file)", _CC_BY,
            _words("AT V AP RH PE"), 9_568,
            checksum="1928d1e991292b8f30dde7ccf8fce996e6547c6b71ac2fe81e0f3c0e67d24be1"),
    Dataset(
        "bank_marketing", "Bank marketing", "Moro et al. 2014, UCI", _CC_BY, _BANK, 45_211, (f"{_UCI}00222/bank.zip",),
        member="bank-full.csv", delimiter=";",
        checksum="d7185f55b4185b1302abc7ee90f10ee10580f61a51ec878f6d408f4c806fd37f",
    ),
    Dataset(
        "banknote", "Banknote authentication", "Lohweg 2012, UCI", _CC_BY,
        _words("variance skewness curtosis entropy class"), 1_372,
        (f"{_UCI}00267/data_banknote_authentication.txt",), header=False,
        checksum="ef22f93bfecdc11cee3340801ea7ba2c4fedbb56ae550c8851522e72afcc9703",
    ),
    Dataset("insurance", "Medical insurance", "Lantz, Machine Learning with R", "Database Contents License 1.0",
            _words("age sex bmi children smoker region charges"), 1_338,
            checksum="0686830aa1d964a36a39e93cfe0d7c32bfd867eb63f701908eb373bb37f66bed"),
    Dataset(
        "bike_sharing", "Bike sharing, hours", "Fanaee-T and Gama 2014, UCI", _CC_BY, _BIKE, 17_379,
        (f"{_UCI}00275/Bike-Sharing-Dataset.zip",), member="hour.csv",
        checksum="e8e74e086d04edff6c7b826aac7f0e733a7a2b3ccf0c8e89f2f0638a6f904472",
    ),
    Dataset(
        "sgemm_gpu", "SGEMM GPU kernel performance", "Ballester-Ripoll et al. 2019, UCI", _CC_BY, _SGEMM, 241_600,
        (f"{_UCI}00440/sgemm_product_dataset.zip",), member="sgemm_product.csv",
        checksum="105bdc8058188481daed2f9ed08580ba1f980311799a946e2952c213596b696c",
    ),
    Dataset(
        "skin_segmentation", "Skin segmentation", "Bhatt and Dhall 2012, UCI", _CC_BY, _words("B G R class"), 245_057,
        (f"{_UCI}00229/Skin_NonSkin.txt",), delimiter="\t", header=False,
        checksum="cef895812298af1c13139d7a452b3d30e16c1d532964447585e8a082b8d3db6a",
    ),
    Dataset(
        "adult", "Adult", "Becker and Kohavi 1996, UCI", _CC_BY, _ADULT, 48_842,
        (f"{_UCI}adult/adult.data", f"{_UCI}adult/adult.test"), header=False,
        checksum="1f4daf3f662a93240297d587197b59ddbc4771a71e6475b4f9d02d8750052714",
    ),
    Dataset("covertype", "Forest cover type", "Blackard 1998, UCI", _CC_BY, _COVER, 581_012),
    Dataset("susy", "SUSY", "Baldi et al. 2014, UCI", _CC_BY, ("signal",), 5_000_000),
    Dataset("superconductivity", "Superconductor data, critical_temp last", "Hamidieh 2018, UCI", _CC_BY, (), 21_263),
    Dataset("year_prediction_msd", "Million songs, the year first", "Bertin-Mahieux et al. 2011, UCI", _CC_BY, (),
            515_345),
    Dataset("adult_discretized", "Adult, coded", "authors of Private-PGM", "CC BY 4.0", (), 48_842,
            checksum="b7ada9bcdae9393aaf8c8ca0d3540ba5946c9268c3abd1cfb13535d2fc005b18"),
    Dataset("acs_income", "ACS income, California 2018, coded", "Census PUMS, coded by the paper's authors",
            "public domain", (), 195_665,
            checksum="c1c87750bfe25321fa6bd4febfd91c6ba95724c7af5e2442a554f51031b9cf5b"),
    Dataset("acs_employment", "ACS employment, coded", "Census PUMS, coded by the paper's authors", "public domain", (),
            50_000,
            checksum="2a5139a18f7b0016717d659fd14f9e76d89923517d2dcb90094af84740db77d2"),
    Dataset("acs_mobility", "ACS mobility, coded", "Census PUMS, coded by the paper's authors", "public domain", (),
            29_358,
            checksum="308554626c19fe56b70b64430138fe08d3698c5198cdf9a74daac272d1bef2fd"),
    Dataset("acs_public_coverage", "ACS public coverage, coded", "Census PUMS, coded by the paper's authors",
            "public domain", (), 138_550),
    Dataset("fire", "Fire department calls, coded", "San Francisco Open Data, coded for NIST", "PDDL", (), 305_119,
            checksum="0c05c5a7feee7084b6a9b29f271a5a68c85b0baee50358dd172023ff53399aee"),
    Dataset("nist_taxi", "Chicago taxi trips, coded", "NIST PSCR Temporal Map Challenge", "Chicago open data", (),
            226_051,
            checksum="e8d2af54e83a4caa6d576f3f8e56d3ff38f1df5fa3da5d9186603ef5ff95c3d2"),
)  # fmt: skip
DATASETS: Mapping[str, Dataset] = MappingProxyType({dataset.name: dataset for dataset in _ALL})


def dataset_named(name: str) -> Dataset:
    """A data set.

    Raises
    ------
    InvalidInput
        For a name that none has.
    """
    if name not in DATASETS:
        raise InvalidInput(f"no data set {one_line(name)}: `dpregress datasets list` shows their names")
    return DATASETS[name]
