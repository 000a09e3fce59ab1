import type { FastifyInstance } from 'fastify';
import { ProblemError } from '../problem-error.ts';
import { decodeText } from './request.ts';

/** Makes a server read signed documents, at the routes that take one: as the parameter `document`. */
export function readDocuments(server: FastifyInstance): void {
  server.addContentTypeParser('application/jwt', { parseAs: 'buffer' }, (request, body: Buffer, callback) => {
    try {
      if (request.routeOptions.config.route?.takesDocument !== true) {
        throw new ProblemError('unsupported_media_type', 'Signed documents are not read here.');
      }
      callback(null, new Map([['document', decodeText(body)]]));
    } catch (error) {
      callback(null, error);
    }
  });
}
