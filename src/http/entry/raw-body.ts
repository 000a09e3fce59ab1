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

/** Adds a route that gets each body as it was sent, of whatever type, with its headers: as the parameter `event`. */
export function receiveEvents(server: FastifyInstance, addRoute: (scope: FastifyInstance) => void): void {
  server.register((scope, _, done) => {
    scope.removeAllContentTypeParsers();
    // Fastify refuses a Content-Type that is no media type before it looks for a parser.
    scope.addHook('onRequest', ({ headers }, _reply, next) => {
      delete headers['content-type'];
      next();
    });
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, ({ headers }, body: Buffer, callback) => {
      callback(null, new Map([['event', { body, headers }]]));
    });
    addRoute(scope);
    done();
  });
}
