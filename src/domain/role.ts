/** What a process is, and what its store holds: an authority's licenses, or an agent's copy of its upstream's. */
export type RoleName = 'authority' | 'agent';
