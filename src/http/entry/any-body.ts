import type { FastifyInstance, FastifyRequest } from 'fastify';
import { noParameters, type RawParameters } from '../../wire/parameters.ts';
import type { HttpLimits } from '../app.ts';
import { ProblemError } from '../problem-error.ts';
import { form, readParameters, tooMany } from './request.ts';

/** Adds a route that also reads the fields of a multipart body, and ignores a body of an unknown type, as some stores do. */
export function receiveAnyBody(
  server: FastifyInstance,
  { parameters: maximum }: HttpLimits,
  addRoute: (scope: FastifyInstance) => void,
): void {
  server.register((scope, _, ready) => {
    scope.addHook('onRequest', ({ headers }, _reply, next) => {
      const [mediaType] = /^[^\s/;,]+\/[^\s/;,]+/.exec(headers['content-type'] ?? '') ?? [];
      // Fastify refuses a Content-Type that is no media type before it looks for a parser.
      if (mediaType === undefined) delete headers['content-type'];
      // The SDKs of some stores send JSON:API.
      else if (/\+json$/i.test(mediaType)) headers['content-type'] = 'application/json';
      // Whatever the charset, such stores read UTF-8.
      else if (!/^multipart\//i.test(mediaType)) headers['content-type'] = mediaType;
      next();
    });
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
      const contentType = request.headers['content-type'];
      if (contentType === undefined) return readForm(body, maximum);
      const boundary = /^multipart\/form-data\s*;.*boundary="?([^";\s]+)/i.exec(contentType)?.[1];
      if (boundary === undefined) return noParameters;
      const fields = await readMultipart(body, boundary);
      if (fields === null) return new ProblemError('malformed_body', 'The body is not multipart/form-data.');
      const sent = [...fields].filter(([, value]) => value !== '');
      return sent.length > maximum ? tooMany(maximum) : new Map<string, unknown>(sent);
    });
    addRoute(scope);
    ready();
  });
}

/** A form, or the error that it is none. */
function readForm(body: Buffer, maximum: number): RawParameters | Error {
  try {
    return readParameters(form, body, maximum);
  } catch (error) {
    return error as Error;
  }
}

/** The fields of a multipart body; null if it is none. Node takes no boundary of less than 27 characters. */
async function readMultipart(body: Buffer, boundary: string): Promise<FormData | null> {
  const longer = boundary.padEnd(27, '0');
  const text = `\r\n${body.toString('latin1')}`.replaceAll(`\r\n--${boundary}`, `\r\n--${longer}`);
  const headers = { 'content-type': `multipart/form-data; boundary=${longer}` };
  return await new Response(Buffer.from(text.slice(2), 'latin1'), { headers }).formData().catch(() => null);
}
