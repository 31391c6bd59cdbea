//! Routes of the API. `docs/viewer-api.md` documents requests and responses.

mod blocks;
mod compare;
mod edits;
mod files;
mod graph;
mod keys;
mod models;
mod overview;
mod rope;
mod state;
mod templates;
mod tensors;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::Response as HttpResponse;
use axum::routing::{MethodRouter, get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::guard::{Guard, guard};
use crate::jobs::{CancelFlag, JobKind};
use crate::models::OpenModel;
use crate::query::Query;
use crate::response::{ApiError, ApiResult};
use crate::{Session, assets};

/// Maximum size of a request body in bytes.
const MAX_BODY: usize = 1 << 20;

/// Returns the router of the page and the API.
pub fn router(session: Arc<Session>, authorization: Guard) -> Router {
    let model_routes = [
        ("summary", valid_model(overview::summary)),
        ("findings", unchanged_files(overview::findings)),
        ("memory", valid_model(overview::memory)),
        ("layers", model_graph(overview::layers)),
        ("graph", model_graph(graph::graph)),
        ("graph.svg", model_graph(graph::picture)),
        ("rope", model_graph(rope::rope)),
        ("report", valid_model(overview::report)),
        ("traffic", any_model(state::traffic)),
        ("state", any_model(state::state)),
        ("reload", post_json(Requires::Nothing, state::reload)),
        ("keys", valid_model(keys::keys)),
        ("key", valid_model(keys::key)),
        ("tensors", valid_model(tensors::tensors)),
        ("tensor", valid_model(tensors::tensor)),
        ("tensor/tile", valid_model(tensors::tile)),
        ("tensor/rows", valid_model(tensors::rows)),
        ("tensor/statistics", valid_model(tensors::statistics)),
        ("tensor/block", valid_model(blocks::block)),
        ("map", unchanged_files(files::map)),
        ("bytes", unchanged_files(files::bytes)),
        ("spans", unchanged_files(files::spans)),
        ("tokenizer", valid_model(tokens::tokenizer)),
        ("tokens", valid_model(tokens::tokens)),
        ("merges", valid_model(tokens::merges)),
        ("tokenize", post_json(Requires::ValidModel, tokens::tokenize)),
        ("templates", valid_model(templates::templates)),
        ("template", post_json(Requires::ValidModel, templates::template)),
        ("edit", post_json(Requires::ValidModel, edits::edit)),
    ];
    let compare_routes = [
        ("keys", model_pair(compare::keys)),
        ("tensors", model_pair(compare::tensors)),
        ("tensor", model_pair(compare::tensor)),
        ("tile", model_pair(compare::tile)),
    ];
    // The guard has checked the secret already.
    let mut router = Router::new()
        .route("/{secret}/", get(asset))
        .route("/{secret}/{*file}", get(asset))
        .route("/{secret}/api/1/models", get(models::models));
    for (name, method) in model_routes {
        router = router.route(&format!("/{{secret}}/api/1/models/{{id}}/{name}"), method);
    }
    for (name, method) in compare_routes {
        router = router.route(&format!("/{{secret}}/api/1/compare/{{a}}/{{b}}/{name}"), method);
    }
    router
        .with_state(session)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(authorization, guard))
}

/// Path parameters of a request about one model.
#[derive(Deserialize)]
struct ModelPath {
    id: String,
}

/// Path parameters of a request about two models.
#[derive(Deserialize)]
struct ComparePath {
    a: String,
    b: String,
}

/// Path parameters of a request for a file of the page.
#[derive(Deserialize)]
struct AssetPath {
    #[serde(default)]
    file: String,
}

/// A request about one model.
pub struct Request<'a> {
    pub session: &'a Session,
    /// Index of the model.
    pub id: usize,
    pub model: Arc<OpenModel>,
    pub query: &'a Query,
    pub cancel: &'a CancelFlag,
}

/// Requirement on the model that is checked before a handler runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Requires {
    /// The headers are valid and the files have not changed.
    ValidModel,
    /// The files have not changed.
    UnchangedFiles,
    Nothing,
}

impl Requires {
    fn check(self, model: &OpenModel) -> Result<(), ApiError> {
        if self != Self::Nothing {
            model.require_unchanged()?;
        }
        if self == Self::ValidModel {
            model.model()?;
        }
        Ok(())
    }
}

type Handler = fn(&Request) -> ApiResult;

/// Routes a GET request that requires valid headers.
fn valid_model(handler: Handler) -> MethodRouter<Arc<Session>> {
    get_json(Requires::ValidModel, JobKind::Other, handler)
}

/// Routes a GET request that requires valid headers and builds a computation graph.
fn model_graph(handler: Handler) -> MethodRouter<Arc<Session>> {
    get_json(Requires::ValidModel, JobKind::Graph, handler)
}

/// Routes a GET request that also works with invalid headers.
fn unchanged_files(handler: Handler) -> MethodRouter<Arc<Session>> {
    get_json(Requires::UnchangedFiles, JobKind::Other, handler)
}

/// Routes a GET request that also works after the files have changed.
fn any_model(handler: Handler) -> MethodRouter<Arc<Session>> {
    get_json(Requires::Nothing, JobKind::Other, handler)
}

fn get_json(requires: Requires, kind: JobKind, handler: Handler) -> MethodRouter<Arc<Session>> {
    get(
        async move |State(session): State<Arc<Session>>,
                    Path(path): Path<ModelPath>,
                    query: Query| {
            let server = session.clone();
            let job = move |cancel: &CancelFlag| {
                let (id, model) = server.models.get(&path.id)?;
                requires.check(&model)?;
                let remote = model.files.is_remote();
                let request = Request { session: &server, id, model, query: &query, cancel };
                let result = server.jobs.install(remote, || handler(&request));
                result.map_err(|error| with_cause(&request.model, error))
            };
            session.jobs.run(kind, job).await
        },
    )
}

/// Routes a POST request with a JSON body.
fn post_json<T: DeserializeOwned + Send + 'static>(
    requires: Requires,
    handler: fn(Request, T) -> ApiResult,
) -> MethodRouter<Arc<Session>> {
    post(
        async move |State(session): State<Arc<Session>>,
                    Path(path): Path<ModelPath>,
                    query: Query,
                    headers: HeaderMap,
                    body: Bytes| {
            let body = json_body(&headers, &body)?;
            let server = session.clone();
            let job = move |cancel: &CancelFlag| {
                let (id, model) = server.models.get(&path.id)?;
                requires.check(&model)?;
                let request = Request { session: &server, id, model, query: &query, cancel };
                handler(request, body)
            };
            session.jobs.run(JobKind::Other, job).await
        },
    )
}

/// Parses the JSON body of a request.
fn json_body<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, ApiError> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.and_then(|value| value.split(';').next()).map(str::trim);
    if !content_type.is_some_and(|value| value.eq_ignore_ascii_case("application/json")) {
        let error = ApiError::bad_request("expected a body of type `application/json`");
        return Err(ApiError { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, ..error });
    }
    serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("invalid body: {error}")))
}

/// Routes a GET request about two models.
fn model_pair(handler: fn(&compare::Request) -> ApiResult) -> MethodRouter<Arc<Session>> {
    get(
        async move |State(session): State<Arc<Session>>,
                    Path(path): Path<ComparePath>,
                    query: Query| {
            let server = session.clone();
            let job = move |cancel: &CancelFlag| {
                let ((_, a), (_, b)) = (server.models.get(&path.a)?, server.models.get(&path.b)?);
                Requires::ValidModel.check(&a)?;
                Requires::ValidModel.check(&b)?;
                let remote = a.files.is_remote() || b.files.is_remote();
                let request = compare::Request { a: &a, b: &b, query: &query, cancel };
                let result = server.jobs.install(remote, || handler(&request));
                result.map_err(|error| with_cause(&b, with_cause(&a, error)))
            };
            session.jobs.run(JobKind::Other, job).await
        },
    )
}

/// Replaces an internal error by its cause: 502 for a remote file, 409 for a file that has changed meanwhile, 422 for
/// a truncated file.
fn with_cause(model: &OpenModel, error: ApiError) -> ApiError {
    if error.status != StatusCode::INTERNAL_SERVER_ERROR {
        return error;
    }
    if model.files.is_remote() {
        return ApiError { status: StatusCode::BAD_GATEWAY, ..error };
    }
    let changed = model.require_unchanged().err();
    changed.or_else(|| model.truncation().cloned()).unwrap_or(error)
}

async fn asset(Path(path): Path<AssetPath>) -> Result<HttpResponse, ApiError> {
    assets::file(&path.file)
}
