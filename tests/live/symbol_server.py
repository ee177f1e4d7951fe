"""A server for symbol files on the loopback address, which can also misbehave in the ways servers do."""
import http.server
import ssl
import threading
import time


class SymbolServer:
    """`files`: path to content. `mode` says how each of them is answered; what is not among them is 404. `certificate`:
    files with it and its key, for https."""

    def __init__(self, files, mode="good", certificate=None):
        self.files, self.mode, self.asked, self.over = dict(files), mode, [], threading.Event()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def head(self, status, length=None, **headers):
                self.send_response(status)
                if length is None:
                    self.close_connection = True
                else:
                    self.send_header("Content-Length", str(length))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def do_GET(self):
                path = self.path.lstrip("/")
                server.asked.append(path)
                content = server.files.get(path)
                if content is None:
                    return self.head(404, 0)
                try:
                    return getattr(self, server.mode)(content)
                except OSError:
                    return None  # the other side had enough

            def good(self, content):
                self.head(200, len(content))
                self.wfile.write(content)

            def cut(self, content):
                self.head(200, len(content))
                self.wfile.write(content[:len(content) // 2])
                self.close_connection = True

            def cut_unseen(self, content):
                self.head(200)
                self.wfile.write(content[:len(content) // 2])

            def empty(self, _):
                self.head(200, 0)

            def text(self, _):
                self.good(b"<html>sign in first</html>")

            def slow(self, content):
                self.head(200, len(content))
                for at in range(len(content)):
                    if server.over.wait(0.05):
                        return
                    self.wfile.write(content[at:at + 1])
                    self.wfile.flush()

            def mute(self, _):
                server.over.wait(60)
                self.close_connection = True

            def endless(self, content):
                self.head(200)
                while not server.over.is_set():
                    self.wfile.write(content * 16)

            def loop(self, _):
                self.head(302, 0, Location=self.path)

            def to_file(self, _):
                self.head(302, 0, Location="file:///etc/passwd")

            def busy(self, _):
                self.head(503, 0)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.http = Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.http.shutdown()
        self.http.server_close()

    def wait_asked(self, at_most_s=60):
        end = time.monotonic() + at_most_s
        while not self.asked and time.monotonic() < end:
            time.sleep(0.02)
