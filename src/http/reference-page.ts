import type { FastifyInstance, FastifyReply } from 'fastify';
import { accepts } from './problem-response.ts';
import { closeAfter } from './entry/connections.ts';
import type { UnknownRoute } from './web-page.ts';
import { openViewerFile, type ViewerFile } from './viewer-file.ts';

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Latchkey: HTTP reference</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="/docs/swagger-ui.css">
    <script src="/docs/swagger-ui-bundle.js" defer></script>
    <script src="/docs/reference.js" defer></script>
  </head>
  <body>
    <noscript>Without scripts, the reference is <a href="/openapi.json">openapi.json</a>.</noscript>
    <main id="reference"></main>
  </body>
</html>
`;

/** Hides the controls for sending requests, because the gate refuses requests of pages. */
const script = `const nothing = () => () => null;
SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  supportedSubmitMethods: [],
  plugins: [
    { wrapComponents: { ServersContainer: nothing, AuthorizeBtnContainer: nothing, authorizeOperationBtn: nothing } },
  ],
  validatorUrl: null,
});
`;

/** Allows scripts and styles of this server, and images in the styles. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Adds the HTTP reference as a web page (src/http/entry/README.md, Web pages and the reference). */
export function addReferencePage(server: FastifyInstance, unknownRoute: UnknownRoute): void {
  server.get('/', (request, reply) => {
    // Browsers ask for HTML. Other software accepts anything, and gets 404.
    if (!accepts(request, 'text/html')) throw unknownRoute(request, reply);
    return sendText(reply, 'text/html', page);
  });
  server.get('/docs', (_, reply) => sendText(reply, 'text/html', page));
  server.get('/docs/reference.js', (_, reply) => sendText(reply, 'text/javascript', script));
  server.get('/docs/swagger-ui.css', (_, reply) => sendFile(reply, 'text/css', 'swagger-ui.css'));
  server.get('/docs/swagger-ui-bundle.js', (_, reply) =>
    sendFile(reply, 'text/javascript', 'swagger-ui-bundle.js'),
  );
}

function sendText(reply: FastifyReply, type: string, text: string): FastifyReply {
  return withHeaders(reply, type).send(text);
}

async function sendFile(reply: FastifyReply, type: string, name: ViewerFile): Promise<FastifyReply> {
  const { sizeBytes, content } = await openViewerFile(name);
  return withHeaders(reply, type).header('Content-Length', String(sizeBytes)).send(content);
}

function withHeaders(reply: FastifyReply, type: string): FastifyReply {
  reply
    .type(`${type}; charset=utf-8`)
    .header('Content-Security-Policy', policy)
    .header('X-Content-Type-Options', 'nosniff')
    .header('Cache-Control', 'no-cache')
    // The gate refuses requests with a Referer, also the requests of this page.
    .header('Referrer-Policy', 'no-referrer');
  // Connections are kept open only for callers with a credential.
  return closeAfter(reply);
}
