//! ONNX Runtime: its version, and which providers it has that could be loaded.

use std::ffi::{c_char, c_int};
use std::path::Path;

use ort::sys::{OrtApi, OrtApiBase, OrtStatusPtr};

use super::library::{OpenLibrary, text};
use super::{Answer, names};
use crate::discovery::elf;

/// Providers that live in libraries of their own.
const SEPARATE: [&str; 3] = ["CUDA", "Tensorrt", "OpenVINO"];
/// What those libraries share.
const SHARED: &str = "libonnxruntime_providers_shared.so";
/// How the loader says that a library is not where it looks.
const NOT_FOUND: &str = ": cannot open shared object file";

#[expect(unsafe_code, reason = "the library's C interface")]
pub(super) fn ask(library: &OpenLibrary) -> Result<Answer, String> {
    // SAFETY: the type is that of the C header, the same in every version.
    let base = unsafe { library.function::<unsafe extern "system" fn() -> *const OrtApiBase>("OrtGetApiBase") }?;
    // SAFETY: takes nothing, and returns null or a table that lives as long as the library, which is never closed.
    let base = unsafe { base().as_ref() }.ok_or("OrtGetApiBase returns nothing")?;
    // SAFETY: returns a constant string of the library.
    let version = unsafe { text((base.GetVersionString)()) }.ok_or("tells no version")?;
    check_version(&version)?;
    let [_, minor] = names::OLDEST_ONNXRUNTIME;
    // SAFETY: any number may be asked for; the answer is null or a table at least as long as that version's.
    let api = unsafe { (base.GetApi)(minor).as_ref() }.ok_or_else(|| format!("has no interface of version {minor}"))?;
    let provides = providers(api)?.iter().map(|provider| describe(&library.path, provider)).collect();
    Ok(Answer { provides, ..Answer::version(version) })
}

fn check_version(version: &str) -> Result<(), String> {
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let [oldest_major, oldest_minor] = names::OLDEST_ONNXRUNTIME;
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if [major, minor] >= names::OLDEST_ONNXRUNTIME => Ok(()),
        (Some(_), Some(_)) => Err(format!("too old: {version}, Prony needs {oldest_major}.{oldest_minor} or later")),
        _ => Err(format!("its version `{version}` is none")),
    }
}

/// Names of the providers in this build, without their common ending.
#[expect(unsafe_code, reason = "the library's C interface")]
fn providers(api: &OrtApi) -> Result<Vec<String>, String> {
    let mut list: *mut *mut c_char = std::ptr::null_mut();
    let mut length: c_int = 0;
    // SAFETY: both pointers are to places of the right type that outlive the call.
    let OrtStatusPtr(status) = unsafe { (api.GetAvailableProviders)(&raw mut list, &raw mut length) };
    if !status.is_null() {
        // SAFETY: a status that is not null holds a message until it is released, which this process never does.
        let message = unsafe { text((api.GetErrorMessage)(status)) };
        return Err(format!("cannot list its providers: {}", message.unwrap_or_default()));
    }
    let count = usize::try_from(length).unwrap_or(0);
    if list.is_null() || count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the call succeeded, so there are so many pointers, each to a string; nobody else knows of them.
    let names = unsafe { std::slice::from_raw_parts(list, count) }.iter().filter_map(|&name| unsafe { text(name) });
    let names = names.map(|name| name.trim_end_matches("ExecutionProvider").to_owned()).collect();
    // SAFETY: the very pointers that the library gave, once; the names were copied.
    let OrtStatusPtr(_) = unsafe { (api.ReleaseAvailableProviders)(list, length) };
    Ok(names)
}

/// A provider's name, with the reason behind it where it could not be loaded.
fn describe(library: &Path, provider: &str) -> String {
    if !SEPARATE.contains(&provider) {
        return provider.to_owned();
    }
    match check_provider(library, provider) {
        Ok(()) => provider.to_owned(),
        Err(reason) => format!("{provider} ({reason})"),
    }
}

/// Opens all that a provider's library needs, but not the library: its initialisers call into a host that only ONNX
/// Runtime sets, and crash without it.
fn check_provider(library: &Path, provider: &str) -> Result<(), String> {
    let folder = library.parent().unwrap_or(Path::new("/"));
    let file = format!("libonnxruntime_providers_{}.so", provider.to_lowercase());
    for name in [SHARED, &file] {
        if !folder.join(name).exists() {
            return Err(format!("{name} is not beside it"));
        }
        elf::check_library(&folder.join(name)).map_err(|reason| format!("{name}: {reason}"))?;
    }
    OpenLibrary::open(&folder.join(SHARED))?;
    let needs = elf::needs(&folder.join(&file)).ok_or_else(|| format!("{file}: its tables make no sense"))?;
    let mut missing = Vec::new();
    for name in &needs.needed {
        let mut wanted = needs.folders.iter().map(|wanted| {
            let wanted = wanted.replace("${ORIGIN}", "$ORIGIN");
            Path::new(&wanted.replace("$ORIGIN", &folder.to_string_lossy())).join(name)
        });
        let path = wanted.find(|path| path.is_absolute() && path.exists());
        match OpenLibrary::open(path.as_deref().unwrap_or(Path::new(name))) {
            Ok(_) => {}
            // All of them are told at once: to install one and then hear of the next costs a day.
            Err(reason) => match reason.strip_suffix(NOT_FOUND) {
                Some(library) => missing.push(library.to_owned()),
                None => return Err(reason),
            },
        }
    }
    missing.dedup();
    if missing.is_empty() { Ok(()) } else { Err(format!("{}{NOT_FOUND}", missing.join(", "))) }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::{fs, process};

    use super::*;

    /// Compiles a library from C into a folder.
    fn compile(folder: &Path, file: &str, source: &str, more: &[&str]) -> PathBuf {
        let c = folder.join("source.c");
        fs::write(&c, source).unwrap();
        let mut gcc = process::Command::new("gcc");
        gcc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o", file]).arg(&c).args(more).current_dir(folder);
        let output = gcc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder.join(file)
    }

    /// A library in C that says it has these providers.
    fn stub(folder: &Path) -> PathBuf {
        let index = std::mem::offset_of!(OrtApi, GetAvailableProviders) / size_of::<usize>();
        let source = format!(
            r#"
            static char *names[] = {{"TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"}};
            static void *nothing(void) {{ return 0; }}
            static void *providers(char ***out, int *count) {{ *out = names; *count = 3; return 0; }}
            static void *table[1000] = {{ [0 ... 999] = nothing, [{index}] = providers }};
            static const void *api(unsigned version) {{ return version == 17 ? table : 0; }}
            static const char *version(void) {{ return "1.20.1"; }}
            static const void *base[] = {{ api, version }};
            const void *OrtGetApiBase(void) {{ return base; }}"#
        );
        compile(folder, "libonnxruntime.so", &source, &[])
    }

    #[test]
    fn a_provider_is_checked_by_what_it_needs_and_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(dir.path()).unwrap();
        let library = stub(&folder);
        compile(&folder, SHARED, "int shared;", &[]);
        let needed = "libprony_test_dependency.so.12";
        compile(&folder, needed, "int needed;", &[&format!("-Wl,-soname,{needed}")]);
        let crash = "#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }";
        let second = "libprony_test_dependency.so.13";
        compile(&folder, second, "int second;", &[&format!("-Wl,-soname,{second}")]);
        let links = [format!("-l:{needed}"), format!("-l:{second}")];
        let [link, other] = links.each_ref().map(String::as_str);
        compile(&folder, "libonnxruntime_providers_cuda.so", crash, &["-L.", link, other]);
        let provides = || ask(&OpenLibrary::open(&library).unwrap()).unwrap().provides;

        // Both are beside it, but nothing tells the loader to look there.
        let unresolved = format!("CUDA ({needed}, {second}: cannot open shared object file)");
        let no_tensorrt = "Tensorrt (libonnxruntime_providers_tensorrt.so is not beside it)";
        assert_eq!(provides(), [no_tensorrt, &unresolved, "CPU"]);
        compile(&folder, "libonnxruntime_providers_cuda.so", crash, &["-L.", link, other, "-Wl,-rpath,$ORIGIN"]);
        assert_eq!(provides(), [no_tensorrt, "CUDA", "CPU"]);
        fs::write(folder.join("libonnxruntime_providers_cuda.so"), "text\n").unwrap();
        assert_eq!(provides()[1], "CUDA (libonnxruntime_providers_cuda.so: a text file, not a library)");
    }

    #[test]
    fn versions_below_the_floor_are_refused() {
        assert_eq!(check_version("1.16.3").unwrap_err(), "too old: 1.16.3, Prony needs 1.17 or later");
        assert_eq!(check_version("1.17.0"), Ok(()));
        assert_eq!(check_version("1.31.1"), Ok(()));
        assert_eq!(check_version("2.0.0"), Ok(()));
        assert!(check_version("").is_err());
        assert!(check_version("nightly").is_err());
    }
}
