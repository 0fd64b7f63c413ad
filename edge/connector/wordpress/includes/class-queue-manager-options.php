<?php
/**
 * The stored settings, and which values they may have.
 */

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

final class Queue_Manager_Options {

	const NAME = 'queue_manager';

	public static function defaults() {
		return array(
			'base'    => '',
			'room'    => '',
			'key'     => '',
			'fail'    => 'closed',
			'timeout' => '2',
			'proxies' => '',
			'editors' => true,
		);
	}

	/**
	 * All settings; what is missing or damaged in the database reads as its default.
	 */
	public static function all() {
		$stored = get_option( self::NAME, array() );
		$all    = self::defaults();
		foreach ( $all as $name => $default ) {
			if ( ! is_array( $stored ) || ! isset( $stored[ $name ] ) || ! is_scalar( $stored[ $name ] ) ) {
				continue;
			}
			$value = 'editors' === $name ? (bool) $stored[ $name ] : self::read( $name, (string) $stored[ $name ] );
			if ( null !== $value ) {
				$all[ $name ] = $value;
			}
		}
		return $all;
	}

	/**
	 * A setting of what was typed, or null where that is none. Reading what this returned returns the same.
	 */
	public static function read( $name, $typed ) {
		switch ( $name ) {
			case 'base':
				$typed = rtrim( $typed, '/' );
				return '' === $typed || preg_match( '#^https?://[A-Za-z0-9._:\[\]-]+(/[A-Za-z0-9._~/-]*)?$#iD', $typed ) ? $typed : null;
			case 'room':
				return '' === $typed || preg_match( '/^[a-z0-9][a-z0-9-]{1,62}[a-z0-9]$/D', $typed ) ? $typed : null;
			case 'key':
				return preg_match( '/^[\x21-\x7e]*$/D', $typed ) ? $typed : null;
			case 'fail':
				return 'open' === $typed || 'closed' === $typed ? $typed : null;
			case 'timeout':
				return is_numeric( $typed ) && (float) $typed >= 1 && (float) $typed <= 30 ? $typed : null;
			case 'proxies':
				$list = preg_split( '/[\s,]+/', $typed, -1, PREG_SPLIT_NO_EMPTY );
				foreach ( $list as $network ) {
					if ( ! Queue_Manager_Visit::is_network( $network ) ) {
						return null;
					}
				}
				return implode( ' ', $list );
		}
		return null;
	}

	/**
	 * The trusted proxies, as a list.
	 */
	public static function proxies() {
		return preg_split( '/ /', self::all()['proxies'], -1, PREG_SPLIT_NO_EMPTY );
	}

	/**
	 * The plugin's own version, from its header.
	 */
	public static function version() {
		$header = get_file_data( QUEUE_MANAGER_FILE, array( 'version' => 'Version' ) );
		return $header['version'];
	}
}
