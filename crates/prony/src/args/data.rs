//! The command line of `prony data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use prony_types::{DataSource, DataSpec, SceneKind};

use super::PrintArgs;
use prony_fetch::Sha256Hex;

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    pub(crate) verb: DataVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataVerb {
    /// Write built-in scenes as a COCO and Ultralytics data set
    Synth(SynthArgs),
    /// Say what a data set holds and what is wrong with it
    Info(InfoArgs),
    /// Write a part of a data set, the same every time, as a COCO data set of its own
    Subset(SubsetArgs),
    /// Download files: resumed after a break, checked by size and SHA-256
    Fetch(FetchArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  prony data synth --kind rgb --count 500 --seed 7 scenes/")]
pub(crate) struct SynthArgs {
    /// Folder to make
    pub(crate) out: PathBuf,
    /// Colour or heat
    #[arg(long, default_value = "rgb", value_name = "rgb|thermal")]
    pub(crate) kind: SceneKind,
    /// Number of images
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// The same seed gives the same bytes, everywhere
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

/// Which images of which data set.
#[derive(Debug, Args)]
pub(crate) struct ChoiceArgs {
    /// A COCO instances*.json, an Ultralytics data.yaml, or a folder that holds one of them
    pub(crate) path: PathBuf,
    /// Which part, where there are several [default: val]
    #[arg(long, value_name = "NAME")]
    pub(crate) split: Option<String>,
    /// Where the images of a COCO file are [default: the usual places around it]
    #[arg(long, value_name = "DIR")]
    pub(crate) images: Option<PathBuf>,
    /// At most so many images, drawn by the seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Decides which images a limit leaves
    #[arg(long, value_name = "S", default_value_t = 7)]
    pub(crate) seed: u64,
    /// Only the images that this file names, one id or file name a line
    #[arg(long, value_name = "FILE")]
    pub(crate) ids: Option<PathBuf>,
}

impl ChoiceArgs {
    pub(crate) fn spec(&self) -> DataSpec {
        DataSpec {
            source: DataSource::Path(self.path.clone()),
            split: self.split.clone(),
            limit: self.limit,
            seed: self.seed,
            ids: self.ids.clone(),
            images: self.images.clone(),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony data info coco/                              annotations/instances_val2017.json and its images
  prony data info coco/ --split train --json
  prony data info yolo/data.yaml --check             also decode every image
  prony data info instances.json --images photos/

Exit codes: 0 it can be used; 1 --check found images that cannot be decoded; 2 no data set, or nothing
in it can be used; 130 interrupted.")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// Decode every image and name those that cannot be
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony data subset coco/ --out calib/ --limit 300 --seed 7            for calibration
  prony data subset coco/ --out small/ --limit 500 --max-side 640      scaled down, with the boxes
  prony data subset coco/ --out same/ --ids small/ids.txt --symlink    the same images again

The folder gets images/, annotations/instances.json (COCO) and ids.txt. Ids and categories stay. The
hash is over ids, boxes and categories: two folders with the same hash hold the same slice.")]
pub(crate) struct SubsetArgs {
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// Folder to make
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Copy the images (the default)
    #[arg(long, conflicts_with_all = ["link", "symlink"])]
    pub(crate) copy: bool,
    /// Hard links: no room is taken, on the same disk
    #[arg(long, conflicts_with = "symlink")]
    pub(crate) link: bool,
    /// Symbolic links: the images must stay where they are
    #[arg(long)]
    pub(crate) symlink: bool,
    /// Scale images down whose longest side is above this, with their boxes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub(crate) max_side: Option<u32>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prony data fetch http://host/val2017.zip --out data/
  prony data fetch URL --sha256 4f7e…c1 --size 815585330
  prony data fetch URL_A URL_B --sha256 HEX_A --sha256 HEX_B      one for each, in their order

curl does the download, or wget if there is no curl, without their configuration files (.curlrc,
.wgetrc); http_proxy, https_proxy and no_proxy apply. Redirections are followed, but not from https to
http. What is there of a file is kept as FILE.part, also after Ctrl-C, and the same command goes on
from there if the server says that it is still the same version (ETag, Last-Modified).

Exit codes: 0 every file is there; 1 some are; 2 none is, or wrong usage; 130 interrupted.")]
pub(crate) struct FetchArgs {
    /// What to download, in turn
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    /// Folder for the files
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,
    /// What a file's SHA-256 must be; one for each URL
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Vec<Sha256Hex>,
    /// How many bytes a file must have; one for each URL
    #[arg(long, value_name = "BYTES")]
    pub(crate) size: Vec<u64>,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
}
