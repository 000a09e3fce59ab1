import { z } from 'zod';
import { createSchema, type ZodOpenApiOperationObject, type ZodOpenApiRequestBodyObject } from 'zod-openapi';
import { idempotencyKeyHeader } from '../../domain/header-names.ts';
import { idempotencyKeyPattern } from '../entry/idempotency.ts';
import type { Route } from '../route.ts';
import { keepsResponses } from './responses.ts';
import { formSuffix } from './schemas.ts';

export const formType = 'application/x-www-form-urlencoded';

const idempotencyKey = z.string().regex(idempotencyKeyPattern).optional();
const keptUnderKey = idempotencyKey.meta({
  description:
    'Makes it safe to repeat the request: a repetition gets the same response, and changes nothing.',
});
const notKept = idempotencyKey.meta({
  description:
    'Refuses a repetition while the request is in progress. A later repetition is executed again: this response is not stored.',
});
const prefer = z.string().optional().meta({
  description: '`wait=N` waits up to N seconds, 30 at most, for the upstream’s confirmation (RFC 7240).',
});

/** The path, the query, the headers and the body of a route. */
export function requestOf(route: Route): Partial<ZodOpenApiOperationObject> {
  const { method, body, isBodyInQuery = false } = route;
  const query = isBodyInQuery ? body?.schema.partial() : route.query?.schema;
  const path = describePath(route);
  return {
    requestParams: {
      ...(path !== null && { path }),
      ...(query !== undefined && { query }),
      ...(method !== 'GET' && { header: writeHeaders(route) }),
      ...(route.prefersNewLease === true && { header: z.object({ Prefer: preferNewLease }) }),
    },
    ...(body !== undefined && { requestBody: bodyOf(route, body.schema) }),
  };
}

const preferChange = z.string().optional().meta({
  description:
    '`wait=N` lets a renewal that is not due wait up to N seconds, 30 at most, for a change of its license (RFC 7240).',
});

const preferNewLease = z.string().optional().meta({
  description:
    '`wait=N` with a nonce waits up to N seconds, 30 at most, for a lease into which the issuer has signed the nonce (RFC 7240).',
});

function writeHeaders(route: Route): z.ZodObject {
  if (route.takesEvent === true) return z.object({});
  if (route.takesDocument === true) return z.object({ Prefer: preferChange });
  return z.object({
    [idempotencyKeyHeader]: keepsResponses(route) ? keptUnderKey : notKept,
    ...(route.isVerdict === true && { Prefer: prefer }),
  });
}

/** Each store has members of its own. */
const anything = z.looseObject({}).meta({ id: 'StoreEvent' });

function bodyOf(
  { isBodyInQuery = false, takesDocument, takesEvent, ...route }: Route,
  schema: z.ZodObject,
): ZodOpenApiRequestBodyObject {
  if (takesEvent === true)
    return {
      required: true,
      content: { 'application/json': { schema: anything }, [formType]: { schema: anything } },
    };
  if (takesDocument === true)
    return { required: true, content: { 'application/jwt': { schema: z.string() } } };
  return {
    required: !isBodyInQuery && !schema.safeParse({}).success,
    content: {
      ...(fitsForm(schema) && { [formType]: { schema: formOf(schema) } }),
      'application/json': { schema },
      ...(route.readCsv !== undefined && { 'text/csv': { schema: z.string() } }),
    },
  };
}

/** A form has a schema of its own, because generated clients choose the media type by the schema. */
function formOf(schema: z.ZodObject): { $ref: string } {
  return { $ref: `#/components/schemas/${schema.meta()?.id ?? ''}${formSuffix}` };
}

/** Whether a form can carry the required members of a body: text, but no lists. */
function fitsForm({ shape }: z.ZodObject): boolean {
  return !Object.values(shape).some(
    (member) => !member.safeParse(undefined).success && isList(createSchema(member, { io: 'input' }).schema),
  );
}

function isList(schema: ReturnType<typeof createSchema>['schema']): boolean {
  return typeof schema === 'object' && 'type' in schema && schema.type === 'array';
}

/** The parameters of paths, with the segment before them, which says what an id names. */
const described: Readonly<Record<string, z.ZodType>> = {
  'accounts/:id': z.string().meta({ description: 'The id of an account.' }),
  'products/:id': z.string().meta({ description: 'The key of a product.' }),
  'collections/:id': z.string().meta({ description: 'The id of a collection.' }),
  'purchases/:id': z.string().meta({ description: 'The id of a purchase.' }),
  'coupons/:id': z.int().meta({
    description: 'The id of a coupon; negative while the upstream of an agent has not created the coupon.',
  }),
  'redemptions/:order': z.string().meta({ description: 'The order that redeemed a coupon.' }),
  'licenses/:key': z.string().meta({ description: 'A license key, in any spelling.' }),
  'activations/:key': z.string().meta({ description: 'A license key, in any spelling.' }),
  'activations/:id': z.string().meta({ description: 'The id of an activation.' }),
  'outbox/:id': z.string().meta({ description: 'The id of an operation.' }),
  'sign-ins/:code': z.string().meta({ description: 'The code that a page of the console shows.' }),
  'webhooks/:id': z.string().meta({ description: 'The id of a webhook endpoint.' }),
  'webhook-events/:id': z.string().meta({ description: 'The `webhook-id` of an event.' }),
  'tokens/:id': z.string().meta({ description: 'The id of a token.' }),
  'v1/:name': z.string().meta({ description: 'The name of the sender in `webhooks.in`.' }),
  'agents/:number': z.int().min(1).meta({ description: 'The number of an agent.' }),
  'audit/:id': z.int().min(0).meta({ description: 'The id of an entry in the audit log.' }),
};

/** The parameters of a route's path; null where it has none. */
export function describePath({ path }: Route): z.ZodObject | null {
  const named = [...path.matchAll(/(?<![^/])[^/]+\/:(\w+)/g)].map(([place, name = '']) => [
    name,
    described[place],
  ]);
  return named.length === 0 ? null : z.object(Object.fromEntries(named));
}
