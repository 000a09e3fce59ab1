import type { FastifyRequest } from 'fastify';

/** Whether a request accepts a media type by its name (RFC 9110, 12.5.1): wild cards name none, and `q=0` refuses it. */
export function accepts(
  { headers: { accept = '' } }: Pick<FastifyRequest, 'headers'>,
  mediaType: string,
): boolean {
  return accept.split(',').some((range) => {
    const [name, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return name === mediaType && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}
