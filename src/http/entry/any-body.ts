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
      return readMultipart(body, boundary, maximum);
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

/** The fields of a multipart body (RFC 7578), of which a file is a text, too; or the error that it is none. */
function readMultipart(body: Buffer, boundary: string, maximum: number): RawParameters | Error {
  // In latin1, each byte is a character.
  const [, ...parts] = `\r\n${body.toString('latin1')}`.split(`\r\n--${boundary}`);
  const end = parts.findIndex((part) => part.startsWith('--'));
  if (end > maximum) return tooMany(maximum);
  const fields = parts.slice(0, Math.max(0, end)).flatMap(readPart);
  if (end === -1 || fields.length < end)
    return new ProblemError('malformed_body', 'The body is not multipart/form-data.');
  return new Map(fields.filter(([, value]) => value !== ''));
}

const nameOfPart = /^content-disposition:[ \t]*form-data;(?:.*?;)??[ \t]*name=(?:"([^"\r\n]*)"|([^\s";]+))/im;

/** The name and the value of a part; nothing if the part has no name. */
function readPart(part: string): [name: string, value: string][] {
  const end = part.indexOf('\r\n\r\n');
  const [, quoted, bare] = nameOfPart.exec(part.slice(0, Math.max(0, end))) ?? [];
  const name = quoted ?? bare;
  return name === undefined ? [] : [[utf8Of(name), utf8Of(part.slice(end + '\r\n\r\n'.length))]];
}

function utf8Of(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString();
}
