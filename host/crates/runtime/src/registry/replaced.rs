//! Plugins that a reload has replaced while calls or sessions still used them.

use std::{sync::Arc, time::Duration};

use tokio::sync::Mutex;

use super::RegisteredPlugin;

/// How often the plugins are looked at. Their instances take memory until then.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Tears down each plugin soon after its last use.
#[derive(Default)]
pub(crate) struct ReplacedPlugins {
    plugins: Arc<Mutex<Vec<Arc<RegisteredPlugin>>>>,
}

impl ReplacedPlugins {
    /// Adds plugins that are in no registry any more.
    pub(crate) async fn add(&self, replaced: Vec<Arc<RegisteredPlugin>>) {
        let mut plugins = self.plugins.lock().await;
        let is_swept = !plugins.is_empty();
        plugins.extend(replaced);
        tear_down_idle(&mut plugins).await;
        if !is_swept && !plugins.is_empty() {
            tokio::spawn(sweep(Arc::clone(&self.plugins)));
        }
    }

    /// Tears down all plugins, also those that are still used.
    pub(crate) async fn tear_down_all(&self) {
        for plugin in self.plugins.lock().await.drain(..) {
            plugin.teardown().await;
        }
    }
}

async fn sweep(plugins: Arc<Mutex<Vec<Arc<RegisteredPlugin>>>>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let mut plugins = plugins.lock().await;
        tear_down_idle(&mut plugins).await;
        if plugins.is_empty() {
            return;
        }
    }
}

async fn tear_down_idle(plugins: &mut Vec<Arc<RegisteredPlugin>>) {
    for plugin in plugins.extract_if(.., |plugin| Arc::strong_count(plugin) == 1) {
        plugin.teardown().await;
    }
}
