//! Object store clients, configured from the environment.

use std::sync::Arc;

use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::runtime::Runtime;
use url::Url;

use super::http::Connector;
use crate::budget::ByteBudget;
use crate::client::Client;
use crate::credentials;
use crate::error::{Error, Fault};

/// A bucket, for reading objects and for multipart uploads.
#[derive(Clone)]
pub(super) struct Store {
    pub objects: Arc<dyn ObjectStore>,
    pub uploads: Arc<dyn MultipartStore>,
}

impl Store {
    pub fn new<S: ObjectStore + MultipartStore>(store: S) -> Self {
        let store = Arc::new(store);
        Self { objects: store.clone(), uploads: store }
    }

    /// Returns the metadata of an object; `None` if it does not exist.
    pub async fn find(&self, key: &Path) -> object_store::Result<Option<ObjectMeta>> {
        match self.objects.head(key).await {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.objects.fmt(f)
    }
}

/// Creates a runtime for one future at a time.
pub(super) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()
}

/// Creates the client for a URL, with credentials, region and endpoint from the environment.
///
/// # Errors
/// If the environment has no credentials and no source of credentials.
pub(super) fn store(
    client: &Arc<Client>,
    url: &Url,
    budget: &Arc<ByteBudget>,
) -> Result<Store, Error> {
    let fail = |why| client.error(url, Fault::Store(why));
    let connector = Connector { client: Arc::clone(client), budget: Arc::clone(budget) };
    let options = &client.options;
    let retry = RetryConfig {
        max_retries: options.attempts.saturating_sub(1) as usize,
        backoff: BackoffConfig {
            init_backoff: options.backoff,
            max_backoff: options.max_backoff,
            base: 2.0,
        },
        ..RetryConfig::default()
    };
    macro_rules! build {
        ($builder:ty, $missing:path) => {{
            let builder = <$builder>::from_env();
            if let Some(what) = $missing(&builder) {
                return Err(fail(what.into()));
            }
            builder
                .with_url(url.as_str())
                .with_http_connector(connector)
                .with_retry(retry)
                .build()
                .map(Store::new)
        }};
    }
    let store = match url.scheme() {
        #[cfg(feature = "aws")]
        "s3" => build!(object_store::aws::AmazonS3Builder, credentials::missing_s3),
        #[cfg(feature = "gcp")]
        "gs" => build!(object_store::gcp::GoogleCloudStorageBuilder, credentials::missing_gs),
        #[cfg(feature = "azure")]
        "az" => build!(object_store::azure::MicrosoftAzureBuilder, credentials::missing_az),
        other => {
            return Err(fail(format!("this program was built without support for {other}://")));
        }
    };
    store.map_err(|error| fail(explain(&error, url)))
}

/// Formats an error of an object store, with advice on environment variables that may fix it.
pub(super) fn explain(error: &object_store::Error, url: &Url) -> String {
    use object_store::Error as E;
    let advice = match url.scheme() {
        "s3" => {
            "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for stores other than \
                     Amazon's, AWS_ENDPOINT_URL; or AWS_SKIP_SIGNATURE=true for a public bucket"
        }
        "gs" => "set GOOGLE_SERVICE_ACCOUNT, or GOOGLE_SKIP_SIGNATURE=true for a public bucket",
        _ => {
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or \
             AZURE_SKIP_SIGNATURE=true for a public container"
        }
    };
    match error {
        E::NotFound { .. } => "the bucket does not exist".into(),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } | E::Generic { .. } => {
            format!("{error}; {advice}")
        }
        error => error.to_string(),
    }
}

/// Runs a future to completion on a new thread: the caller may be inside another runtime, which
/// forbids blocking.
pub(super) fn wait<T: Send>(runtime: &Runtime, future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| runtime.block_on(future));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
