<?php
/**
 * What a request says of its visitor, read from PHP's own server variables.
 */

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

final class Queue_Manager_Visit {

	/**
	 * The visit as Queue_Manager_Decision takes it.
	 *
	 * @param array    $server  The server variables, without slashes added.
	 * @param string[] $proxies Addresses and networks of the proxies before the site: only these are believed.
	 */
	public static function of( array $server, array $proxies ) {
		$text = function ( $name ) use ( $server ) {
			return isset( $server[ $name ] ) && is_string( $server[ $name ] ) ? $server[ $name ] : '';
		};
		$address = self::address( $text( 'REMOTE_ADDR' ) );
		$proxied = self::is_within( $address, $proxies );
		$hops    = array_map( 'trim', explode( ',', $text( 'HTTP_X_FORWARDED_FOR' ) ) );
		while ( self::is_within( $address, $proxies ) && $hops && '' !== end( $hops ) ) {
			$address = self::address( array_pop( $hops ) );
		}
		$scheme = in_array( strtolower( $text( 'HTTPS' ) ), array( '', 'off' ), true ) ? 'http' : 'https';
		if ( $proxied ) {
			$said   = array_map( 'trim', explode( ',', strtolower( $text( 'HTTP_X_FORWARDED_PROTO' ) ) ) );
			$scheme = 'http' === end( $said ) || 'https' === end( $said ) ? end( $said ) : $scheme;
		}
		// What is no host makes an address that no rule knows, and so it queues.
		$host = preg_match( '/^[A-Za-z0-9._:\[\]-]+$/D', $text( 'HTTP_HOST' ) ) ? $text( 'HTTP_HOST' ) : 'invalid';
		return array(
			'method'  => $text( 'REQUEST_METHOD' ),
			'url'     => $scheme . '://' . $host . self::target( $text( 'REQUEST_URI' ) ),
			'address' => $address,
			'cookie'  => $text( 'HTTP_COOKIE' ),
			'accept'  => $text( 'HTTP_ACCEPT' ),
			'mode'    => $text( 'HTTP_SEC_FETCH_MODE' ),
			'agent'   => $text( 'HTTP_USER_AGENT' ),
		);
	}

	/**
	 * Path and query as the browser sent them, even where a client has put a whole address there. Bytes beyond ASCII, which no browser
	 * sends, are escaped.
	 */
	private static function target( $target ) {
		$path = preg_replace( '#^https?://[^/?\#]*#i', '', $target );
		$path = 0 === strpos( $path, '/' ) ? $path : '/' . $path;
		return preg_replace_callback(
			'/[^\x21-\x7e]/',
			function ( $byte ) {
				return rawurlencode( $byte[0] );
			},
			$path
		);
	}

	/** An IP address without port, zone, brackets and IPv6 dress on an IPv4 one; "" for what is none. */
	private static function address( $text ) {
		$text = preg_replace( array( '/^\[([^\]]*)\](:\d+)?$/D', '/^(\d+\.\d+\.\d+\.\d+):\d+$/D', '/%.*$/', '/^::ffff:(?=\d+\.)/i' ), array( '$1', '$1', '', '' ), $text );
		return false === filter_var( $text, FILTER_VALIDATE_IP ) ? '' : $text;
	}

	/** Whether the text is an address or a network in CIDR form. */
	public static function is_network( $text ) {
		$parts = explode( '/', $text );
		if ( count( $parts ) > 2 || '' === self::address( $parts[0] ) || $parts[0] !== self::address( $parts[0] ) ) {
			return false;
		}
		return ! isset( $parts[1] ) || ( preg_match( '/^\d{1,3}$/D', $parts[1] ) && (int) $parts[1] <= 8 * strlen( inet_pton( $parts[0] ) ) );
	}

	private static function is_within( $address, array $networks ) {
		if ( '' === $address ) {
			return false;
		}
		$bytes = inet_pton( $address );
		foreach ( $networks as $network ) {
			$parts = explode( '/', $network );
			$base  = inet_pton( $parts[0] );
			$bits  = isset( $parts[1] ) ? (int) $parts[1] : 8 * strlen( $base );
			if ( strlen( $base ) !== strlen( $bytes ) ) {
				continue;
			}
			$whole = intdiv( $bits, 8 );
			$mask  = 0xff & ( 0xff << ( 8 - $bits % 8 ) );
			if ( substr( $base, 0, $whole ) === substr( $bytes, 0, $whole )
				&& ( 0 === $bits % 8 || ( ord( $base[ $whole ] ) & $mask ) === ( ord( $bytes[ $whole ] ) & $mask ) ) ) {
				return true;
			}
		}
		return false;
	}
}
