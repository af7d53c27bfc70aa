//! Everything that decides where runtimes are looked for, and the folders that follow from it, in order.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use prony_files::Kind;
use prony_types::RuntimeName;

use super::names::{self, natural};

/// What decides where to look. Made from the environment, or in a test from a tree of its own.
#[derive(Clone, Debug)]
pub struct Places {
    /// What stands for `/`.
    pub root: PathBuf,
    /// Prony's own folder; runtimes lie in `runtimes` below it.
    pub home: PathBuf,
    /// Paths that a flag or the plan gave.
    pub explicit: Vec<(RuntimeName, PathBuf)>,
    /// The folder of this very binary.
    pub binary: Option<PathBuf>,
    /// The current folder.
    pub current: Option<PathBuf>,
    /// The environment.
    pub variables: BTreeMap<OsString, OsString>,
}

/// A folder, or several by a pattern with `*` in it, and the word for having found something there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) found_by: &'static str,
    pub(super) pattern: PathBuf,
}

impl Places {
    /// The places of this machine and this environment.
    pub fn here(home: &Path, explicit: &[(RuntimeName, PathBuf)]) -> Places {
        Places {
            root: PathBuf::from("/"),
            home: home.to_owned(),
            explicit: explicit.to_vec(),
            binary: std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned)),
            current: std::env::current_dir().ok(),
            variables: std::env::vars_os().collect(),
        }
    }

    /// A variable that is set to something.
    pub(super) fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty())
    }

    /// A folder that a variable names. Whatever is found there is opened by a child that stands elsewhere.
    pub(super) fn folder_in(&self, variable: &str) -> Option<PathBuf> {
        let folder = self.variable(variable).map(PathBuf::from)?;
        match &self.current {
            Some(current) => Some(current.join(folder)),
            None => Some(folder),
        }
    }

    /// Folders of a variable like `PATH`, without those that depend on the current folder.
    pub(super) fn folders_in(&self, variable: &str) -> Vec<PathBuf> {
        self.variable(variable).map(|value| prony_files::search_folders(value)).unwrap_or_default()
    }

    /// A well-known folder.
    pub(super) fn at(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// Where a runtime may lie, apart from where someone pointed and Prony's own folder. First wins.
    pub(super) fn folders(&self, name: RuntimeName) -> Vec<Place> {
        let mut places = Vec::new();
        let mut add = |found_by, patterns: Vec<PathBuf>| {
            places.extend(patterns.into_iter().map(|pattern| Place { found_by, pattern }));
        };
        add("beside prony", self.binary.iter().cloned().collect());
        let (subfolders, patterns) = if names::is_program(name) {
            add("PATH", self.folders_in("PATH"));
            (["bin"].as_slice(), self.vendor_programs(name))
        } else {
            add("beside prony", self.binary.iter().map(|folder| folder.join("lib")).collect());
            add("LD_LIBRARY_PATH", self.folders_in("LD_LIBRARY_PATH"));
            add("loader", self.loader());
            (["lib", "lib64"].as_slice(), self.vendor_libraries(name))
        };
        add("vendor's folder", patterns);
        if is_tensorrt(name) {
            for variable in ["TENSORRT_HOME", "TENSORRT_ROOT", "TRT_HOME"] {
                let homes = self.folder_in(variable);
                let inside = |home: PathBuf| {
                    let targets = home.join("targets/*").join(subfolders[0]);
                    subfolders.iter().map(|folder| home.join(folder)).chain([targets]).collect::<Vec<_>>()
                };
                add(variable, homes.map(inside).unwrap_or_default());
            }
        }
        if let Some(conda) = self.folder_in("CONDA_PREFIX") {
            add("conda", vec![conda.join(subfolders[0])]);
        }
        let pixi = |project: &Path| project.join(".pixi/envs/*").join(subfolders[0]);
        add("pixi", self.folder_in("PIXI_PROJECT_ROOT").iter().map(|project| pixi(project)).collect());
        add("python", python_folders(name, || self.site_patterns()));
        // Last, so that what is activated is found as such. What lies here is listed and never opened: whoever made the folder
        // decides what is in it, and people run `prony` in folders that they unpacked or share.
        let above = self.current.iter().flat_map(|current| current.ancestors());
        let projects = above.filter(|folder| folder.join(".pixi/envs").is_dir());
        add(names::NOT_ACTIVATED, projects.map(pixi).collect());
        add(names::NOT_ACTIVATED, python_folders(name, || self.inactive_site_patterns()));
        places
    }

    /// Where the loader of a child looks.
    pub(super) fn loader_folders(&self) -> Vec<PathBuf> {
        let mut folders = self.folders_in("LD_LIBRARY_PATH");
        folders.extend(self.loader());
        folders.extend(self.gpu_folders());
        folders
    }

    /// Every folder that exists here and may hold libraries that other libraries need, whether the loader knows it or
    /// not.
    pub fn library_folders(&self) -> Vec<PathBuf> {
        let names = [RuntimeName::Cudart, RuntimeName::Nvinfer, RuntimeName::Openvino];
        let places = names.iter().flat_map(|&name| self.folders(name));
        let places = places.filter(|place| place.found_by != names::NOT_ACTIVATED);
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in places.flat_map(|place| expand(&place.pattern)) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Folders that exist here with CUDA's and TensorRT's libraries, which the loader may not know: ONNX Runtime's
    /// providers need them, and say nothing about where they are.
    pub fn gpu_folders(&self) -> Vec<PathBuf> {
        let unknown_to_loader = |place: &Place| matches!(place.found_by, "vendor's folder" | "python");
        let names = [RuntimeName::Cudart, RuntimeName::Nvinfer];
        let places = names.iter().flat_map(|&name| self.folders(name)).filter(unknown_to_loader);
        let mut folders: Vec<PathBuf> = Vec::new();
        for folder in places.flat_map(|place| expand(&place.pattern)).filter(|folder| folder.is_dir()) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// Folders that the system's loader searches.
    fn loader(&self) -> Vec<PathBuf> {
        let mut files = vec![self.at("/etc/ld.so.conf")];
        files.extend(expand(&self.at("/etc/ld.so.conf.d/*.conf")).into_iter().rev());
        let mut folders: Vec<PathBuf> = Vec::new();
        for text in files.iter().filter_map(|file| prony_files::read_text(file, Kind::List).ok()) {
            // Lines are folders, comments and `include`s; the included files are read above.
            folders.extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(|line| self.at(line)));
        }
        let triple = multiarch();
        for folder in ["/usr/local/lib", "/usr/lib", "/lib"] {
            folders.push(self.at(folder).join(&triple));
            folders.push(self.at(folder));
        }
        folders.extend([self.at("/usr/lib64"), self.at("/lib64")]);
        let mut seen = std::collections::BTreeSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        folders
    }

    /// Where JetPack, CUDA, TensorRT and OpenVINO put libraries that the loader may not know.
    fn vendor_libraries(&self, name: RuntimeName) -> Vec<PathBuf> {
        let patterns: &[&str] = match name {
            RuntimeName::Onnxruntime => &["/opt/onnxruntime*/lib", "/usr/local/onnxruntime*/lib"],
            RuntimeName::Openvino => &["/opt/intel/openvino*/runtime/lib/*"],
            RuntimeName::Cuda | RuntimeName::Nvml => &[
                "/usr/lib/aarch64-linux-gnu/nvidia",
                "/usr/lib/aarch64-linux-gnu/tegra",
                "/usr/lib/wsl/lib",
                "/usr/local/nvidia/lib64",
                "/usr/local/nvidia/lib",
            ],
            _ => &[
                "/usr/lib/aarch64-linux-gnu/nvidia",
                "/usr/lib/aarch64-linux-gnu/tegra",
                "/usr/local/cuda*/lib64",
                "/usr/local/cuda*/targets/*/lib",
                "/usr/local/tensorrt*/lib",
                "/usr/src/tensorrt/lib",
                "/opt/tensorrt*/lib",
                "/opt/nvidia/lib",
                "/opt/nvidia/*/lib",
            ],
        };
        patterns.iter().map(|pattern| self.at(pattern)).collect()
    }

    fn vendor_programs(&self, name: RuntimeName) -> Vec<PathBuf> {
        let patterns: &[&str] = match name {
            RuntimeName::Trtexec => &[
                "/usr/src/tensorrt/bin",
                "/usr/local/tensorrt*/bin",
                "/opt/tensorrt*/bin",
                "/opt/nvidia/*/bin",
                "/usr/local/cuda*/bin",
            ],
            _ => &[],
        };
        patterns.iter().map(|pattern| self.at(pattern)).collect()
    }
}

/// Folders of a runtime in Python's packages.
fn python_folders(name: RuntimeName, sites: impl Fn() -> Vec<PathBuf>) -> Vec<PathBuf> {
    let inside: &[&str] = match name {
        RuntimeName::Onnxruntime => &["onnxruntime/capi"],
        RuntimeName::Openvino => &["openvino/libs"],
        RuntimeName::Nvinfer | RuntimeName::Nvonnxparser | RuntimeName::NvinferPlugin => &["tensorrt_libs"],
        RuntimeName::NvinferLean => &["tensorrt_lean_libs", "tensorrt_libs"],
        RuntimeName::Cudart | RuntimeName::Cudnn => &["nvidia/*/lib"],
        RuntimeName::Ffmpeg => &["imageio_ffmpeg/binaries"],
        RuntimeName::Cuda | RuntimeName::Nvml | RuntimeName::Trtexec | RuntimeName::Gstreamer => &[],
    };
    let sites = if inside.is_empty() { Vec::new() } else { sites() };
    sites.iter().flat_map(|site| inside.iter().map(move |folder| site.join(folder))).collect()
}

const fn is_tensorrt(name: RuntimeName) -> bool {
    matches!(
        name,
        RuntimeName::Nvinfer
            | RuntimeName::Nvonnxparser
            | RuntimeName::NvinferPlugin
            | RuntimeName::NvinferLean
            | RuntimeName::Trtexec
    )
}

/// The name that Debian gives this architecture's folders.
fn multiarch() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// The folders and files behind a pattern, the highest number first. A `*` stands for anything within one name.
pub(super) fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for component in pattern.components() {
        let part = component.as_os_str();
        let Some((before, after)) = part.to_str().and_then(|part| part.split_once('*')) else {
            paths.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let inside = |path: &PathBuf| {
            let mut names: Vec<String> = list(path)
                .into_iter()
                .filter(|name| name.len() >= before.len() + after.len() && !name.starts_with('.'))
                .filter(|name| name.starts_with(before) && name.ends_with(after))
                .collect();
            names.sort_by(|a, b| natural(b, a));
            names.into_iter().map(|name| path.join(name)).collect::<Vec<_>>()
        };
        paths = paths.iter().flat_map(inside).collect();
    }
    paths.retain(|path| path.exists());
    paths
}

/// The names in a folder; none where it cannot be read.
pub(super) fn list(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
