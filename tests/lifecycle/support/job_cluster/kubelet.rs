//! The kubelet of the stand-in: it runs the real programs of the pods that import data and mount the claim, on a directory that
//! stands for the claim.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use serde_json::Value;

use super::controller::role_of;
use super::state::{Shared, State};
use super::store::Key;

/// The node that programs run on.
const NODE: &str = "worker-1";

impl State {
    /// Starts the program of a pod, if it is one that can run here.
    pub fn start_program(&mut self, key: &Key) {
        let Some(pod) = self.store.get(key).cloned() else { return };
        if !self.runs_programs
            || !matches!(role_of(&pod).as_str(), "data" | "reader" | "files" | "team-directory")
        {
            return;
        }
        let Some(shared) = self.own.upgrade() else { return };
        let mut command = self.command_of(key, &pod);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        self.run(key, NODE);
        let child = Arc::new(std::sync::Mutex::new(child));
        self.programs.insert(key.clone(), Arc::clone(&child));
        let key = key.clone();
        thread::spawn(move || {
            let readers = [copy_log(stdout, &shared, &key), copy_log(stderr, &shared, &key)];
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            // Its pipes are closed: it has ended, or is about to.
            let status = child.lock().unwrap().wait().unwrap();
            let mut state = shared.state.lock().unwrap();
            state.finish(&key, status.code().map_or(137, i64::from));
            state.reconcile();
            shared.changed.notify_all();
        });
    }

    /// The pod's command with every path of the claim and of the scripts as they are here.
    fn command_of(&mut self, key: &Key, pod: &Value) -> Command {
        let container = &pod["spec"]["containers"][0];
        let mount = |name: &str| {
            let mounts = container["volumeMounts"].as_array().unwrap().iter();
            let mut mounts = mounts.filter(|mount| mount["name"] == name);
            mounts.next().map(|mount| mount["mountPath"].as_str().unwrap().to_owned())
        };
        let claim = self.claim.to_str().unwrap().to_owned();
        let mut places = vec![(mount("storage").unwrap(), claim)];
        if let Some(path) = mount("scripts") {
            let scripts = self.scripts.join(&key.2);
            let volumes = pod["spec"]["volumes"].as_array().unwrap();
            let name = volumes.iter().find_map(|volume| volume["configMap"]["name"].as_str()).unwrap();
            let map = ("configmaps", key.1.clone(), name.to_owned());
            write_scripts(self.store.get(&map).unwrap(), &scripts);
            places.push((path, scripts.to_str().unwrap().to_owned()));
        }
        let here = |text: &str| {
            let found = places.iter().find(|(there, _)| text.starts_with(there.as_str()));
            found.map_or_else(|| text.to_owned(), |(there, here)| text.replacen(there.as_str(), here, 1))
        };
        let words = container["command"].as_array().unwrap().iter().map(|word| here(word.as_str().unwrap()));
        let words: Vec<String> = words.collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for variable in container["env"].as_array().unwrap() {
            let (name, value) = (variable["name"].as_str().unwrap(), value_of(variable, pod));
            command.env(name, here(&value));
        }
        command
    }

    /// Ends what a pod runs.
    pub fn stop_program(&mut self, key: &Key) {
        if let Some(child) = self.programs.remove(key) {
            // Its thread may hold it to wait for the end that has come already.
            if let Ok(mut child) = child.try_lock() {
                let _ = child.kill();
            }
        }
    }
}

/// The value of a variable, which may be a field of the pod, as `metadata.labels['a/b']`.
fn value_of(variable: &Value, pod: &Value) -> String {
    let path = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str();
    let value = match path.map(|path| path.split_once('[').unwrap_or((path, ""))) {
        None => &variable["value"],
        Some((path, key)) => {
            let field = path.split('.').fold(pod, |object, part| &object[part]);
            if key.is_empty() { field } else { &field[key.trim_matches(['\'', ']'])] }
        }
    };
    value.as_str().unwrap_or_default().to_owned()
}

fn write_scripts(map: &Value, directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    for (name, text) in map["data"].as_object().unwrap() {
        fs::write(directory.join(name), text.as_str().unwrap()).unwrap();
    }
}

fn copy_log(mut pipe: impl Read + Send + 'static, shared: &Arc<Shared>, key: &Key) -> thread::JoinHandle<()> {
    let (shared, key) = (Arc::clone(shared), key.clone());
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            shared.state.lock().unwrap().print(&key, &text);
            shared.changed.notify_all();
        }
    })
}
