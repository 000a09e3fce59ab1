import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { credentialHeaders, idempotencyKeyHeader } from '../domain/header-names.ts';
import type { Dialect, RefusalForm } from './dialects/dialect.ts';
import { specification } from './dialects/specification.ts';
import type { Access } from './entry/credential.ts';
import type { Route } from './route.ts';

/** Describes the routes as OpenAPI 3.1, from the schemas that validate their requests. */
export function describeRoutes(
  routes: readonly Route[],
  { version, dialect }: { version: string; dialect: Dialect },
): object {
  const paths: ZodOpenApiPathsObject = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route, dialect) };
  }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Latchkey',
      version,
      description: 'Checks license keys and counts their uses beside your software.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: credentialHeaders.apiKey },
        productSecret: { type: 'apiKey', in: 'header', name: credentialHeaders.productSecret },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
  });
}

function describe(route: Route, dialect: Dialect): ZodOpenApiOperationObject {
  const { refusal } = route.path.startsWith('/api/') ? dialect : specification;
  return {
    operationId: operationId(route),
    summary: route.summary,
    security: security(route.access),
    ...requestParts(route),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, schema]) => [status, success(schema)]),
      ),
      '4XX': refused('Refused', refusal),
      '5XX': refused('Not possible now', refusal),
    },
  };
}

function success(schema: z.ZodType | null): {
  description: string;
  content?: Record<string, { schema: z.ZodType }>;
} {
  if (schema === null) return { description: 'Done' };
  return { description: 'Done', content: { [mediaType(schema)]: { schema } } };
}

function mediaType(schema: z.ZodType): string {
  const { contentMediaType } = schema.meta() ?? {};
  if (typeof contentMediaType === 'string') return contentMediaType;
  if (schema instanceof z.ZodString) return 'text/plain';
  return schema instanceof z.ZodFile ? 'application/octet-stream' : 'application/json';
}

function refused(description: string, { mediaType: type, schema }: RefusalForm): ReturnType<typeof success> {
  return { description, content: { [type]: { schema } } };
}

const writeHeaders = z.object({ [idempotencyKeyHeader]: z.string().max(257).optional() });

function requestParts(route: Route): Partial<ZodOpenApiOperationObject> {
  const { method, path, body, isBodyInQuery = false, csvMember } = route;
  const query = isBodyInQuery ? body?.schema.partial() : route.query?.schema;
  const names = [...path.matchAll(/:(\w+)/g)].flatMap(([, name]) => name ?? []);
  const pathSchema = z.object(Object.fromEntries(names.map((name) => [name, z.string()])));
  return {
    requestParams: {
      ...(names.length > 0 && { path: pathSchema }),
      ...(query !== undefined && { query }),
      ...(method !== 'GET' && { header: writeHeaders }),
    },
    ...(body !== undefined && {
      requestBody: {
        required: !isBodyInQuery && !body.schema.safeParse({}).success,
        content: {
          'application/x-www-form-urlencoded': { schema: body.schema },
          'application/json': { schema: body.schema },
          ...(csvMember !== undefined && { 'text/csv': { schema: z.string() } }),
        },
      },
    }),
  };
}

/** `PUT /api/v2/license/usage` → `putApiV2LicenseUsage`. */
function operationId({ method, path }: Route): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return [method.toLowerCase(), ...words.map((word) => word.charAt(0).toUpperCase() + word.slice(1))].join(
    '',
  );
}

function security(access: Access): Record<string, string[]>[] {
  if (access === 'anyone') return [];
  const scopes = [access.scope];
  return [
    ...(access.credential === 'product_secret' ? [] : [{ apiKey: scopes }]),
    ...(access.credential === 'api_key' ? [] : [{ productSecret: scopes }]),
    { bearer: scopes },
  ];
}
