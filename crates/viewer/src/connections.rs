//! Accepts connections and serves them, with limits on their number and on the time of clients.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Maximum number of open connections. Further clients wait.
    pub connections: usize,
    /// Time in which a client must send the headers of its first or next request.
    pub header_time: Duration,
    /// Time in which requests in progress may finish after the server was stopped.
    pub stop_time: Duration,
}

impl Default for ConnectionLimits {
    /// Returns 256 connections, below the usual limit of 1024 file descriptors, 10 seconds for headers, and 2 seconds to
    /// stop.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connections: 256, header_time: seconds(10), stop_time: seconds(2) }
    }
}

/// Pause after a connection that could not be accepted, for example because file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` completes, then lets requests in progress finish for a short time.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let open = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header_time);
    let mut stop = pin!(stop);
    loop {
        let (stream, slot) = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A client that breaks its connection concerns nobody else.
            let _ = connection.await;
            drop(slot);
        });
    }
    drop(listener);
    tokio::select! {
        () = open.shutdown() => {}
        () = sleep(limits.stop_time) => {}
    }
}

/// Waits for a free slot and the next connection.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let slot = slots.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, slot),
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream as Client};
    use std::time::Instant;

    use axum::routing::get;
    use tokio::sync::oneshot;

    use super::*;

    /// Runs `test` with the address of a server, stops the server, and returns how long it took to stop.
    fn with_server(limits: ConnectionLimits, test: impl FnOnce(SocketAddr)) -> Duration {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let slow = async || {
            sleep(Duration::from_secs(60)).await;
            "late"
        };
        let router = Router::new().route("/", get(async || "here")).route("/slow", get(slow));
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let server = runtime.spawn(serve(listener, router, limits, stopped));
        test(address);
        let start = Instant::now();
        drop(stop);
        runtime.block_on(server).unwrap();
        runtime.shutdown_background();
        start.elapsed()
    }

    fn request(address: SocketAddr, path: &str) -> Client {
        let mut client = Client::connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(client, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        client
    }

    fn limits() -> ConnectionLimits {
        ConnectionLimits {
            connections: 4,
            header_time: Duration::from_millis(300),
            stop_time: Duration::from_millis(300),
        }
    }

    fn is_served(client: &mut Client) -> bool {
        let mut answer = [0; 15];
        client.read_exact(&mut answer).is_ok() && answer == *b"HTTP/1.1 200 OK"
    }

    #[test]
    fn idle_clients_are_closed_and_do_not_keep_others_waiting() {
        with_server(limits(), |address| {
            // Clients that send nothing, half a header, and nothing after a request.
            let mut idle: Vec<Client> = (0..8).map(|_| Client::connect(address).unwrap()).collect();
            let mut half = Client::connect(address).unwrap();
            write!(half, "GET / HTTP/1.1\r\nhost:").unwrap();
            let mut kept = request(address, "/");
            assert!(is_served(&mut kept));
            assert!(is_served(&mut request(address, "/")));
            let mut rest = Vec::new();
            assert!(kept.read_to_end(&mut rest).is_ok());
            for client in idle.iter_mut().chain([&mut half]) {
                client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                // Closed, with or without an error response, or reset.
                let _ = client.read_to_end(&mut rest).map_err(|error| {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
                });
            }
        });
    }

    #[test]
    fn a_stopped_server_does_not_wait_for_long_requests() {
        let took = with_server(limits(), |address| {
            std::mem::forget(request(address, "/slow"));
            assert!(is_served(&mut request(address, "/")));
        });
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
