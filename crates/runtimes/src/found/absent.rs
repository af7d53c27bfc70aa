//! Why a backend is not ready, in a few words and with no more advice than helps on this machine.

use prony_types::{BackendName, RuntimeName, RuntimeRecord, RuntimeState};

use super::Found;
use super::choose::{choose, considered, install_for};

/// Why a backend that is not ready is not: `no NVIDIA GPU`, what installs it, or what is wrong with the copy that is here.
pub fn absent(found: &Found, backend: BackendName) -> String {
    if backend.on_gpu() && found.gpus.is_empty() {
        return no_gpu(found);
    }
    let Some((name, _)) = backend.needs() else { return "needs no library".to_owned() };
    if considered(found, name).is_empty() {
        return install_for(backend, name);
    }
    let reason = choose(found, backend).err().unwrap_or_else(|| "it is ready".to_owned());
    let prefix = format!("{backend}: ");
    reason.strip_prefix(&prefix).unwrap_or(&reason).to_owned()
}

/// Without a GPU no library for one would help; a driver that does not work may hide one.
fn no_gpu(found: &Found) -> String {
    let driver = found.runtimes.iter().find(|record| record.name == RuntimeName::Cuda);
    match driver {
        Some(RuntimeRecord { state: RuntimeState::Broken, reason: Some(reason), .. })
            if !reason.contains("CUDA_ERROR_NO_DEVICE") =>
        {
            format!("the NVIDIA driver does not work: {reason}; see `prony doctor`")
        }
        Some(RuntimeRecord { state: RuntimeState::NotOpened, reason: Some(reason), .. }) => {
            format!("the NVIDIA driver is not opened: {reason}; see `prony doctor`")
        }
        _ => "no NVIDIA GPU".to_owned(),
    }
}
