/*
 * openssl11: stands in for OpenSSL 1.1's libssl on systems that have version 3 only.
 *
 * .NET Core 3.1 looks for libssl.so.1.1 and reads all its symbols through it. Linked against version 3, this
 * library passes them on; here are the ones version 3 renamed or dropped. Good enough for the hashes a
 * compiler needs.
 */
int EVP_MD_get_size(const void *digest);
void *SSL_get1_peer_certificate(const void *ssl);

void ERR_put_error(int library, int function, int reason, const char *file, int line);
int EVP_MD_size(const void *digest);
void *SSL_get_peer_certificate(const void *ssl);

void ERR_put_error(int library, int function, int reason, const char *file, int line)
{
    (void)library, (void)function, (void)reason, (void)file, (void)line;
}

int EVP_MD_size(const void *digest)
{
    return EVP_MD_get_size(digest);
}

void *SSL_get_peer_certificate(const void *ssl)
{
    return SSL_get1_peer_certificate(ssl);
}
